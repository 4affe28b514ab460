var searchData=
[
  ['kiln_2eh_0',['kiln.h',['../kiln_8h.html',1,'']]]
];
