var annotated_dup =
[
    [ "Cone", "structCone.html", "structCone" ]
];