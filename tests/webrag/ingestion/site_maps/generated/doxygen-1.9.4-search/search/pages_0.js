var searchData=
[
  ['firing_20a_20kiln_0',['Firing a kiln',['../firing.html',1,'']]]
];
