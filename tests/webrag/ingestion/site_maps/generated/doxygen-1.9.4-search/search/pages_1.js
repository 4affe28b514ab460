var searchData=
[
  ['kiln_20handbook_0',['Kiln handbook',['../index.html',1,'']]]
];
