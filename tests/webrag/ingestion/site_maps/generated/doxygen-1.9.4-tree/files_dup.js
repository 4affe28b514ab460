var files_dup =
[
    [ "kiln.h", "kiln_8h.html", "kiln_8h" ]
];