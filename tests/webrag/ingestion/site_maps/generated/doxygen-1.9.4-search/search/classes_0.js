var searchData=
[
  ['cone_0',['Cone',['../structCone.html',1,'']]]
];
