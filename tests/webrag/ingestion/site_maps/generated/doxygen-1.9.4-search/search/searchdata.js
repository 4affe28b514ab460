var indexSectionsWithContent =
{
  0: "bcfkn",
  1: "c",
  2: "k",
  3: "b",
  4: "n",
  5: "fk"
};

var indexSectionNames =
{
  0: "all",
  1: "classes",
  2: "files",
  3: "functions",
  4: "variables",
  5: "pages"
};

var indexSectionLabels =
{
  0: "All",
  1: "Classes",
  2: "Files",
  3: "Functions",
  4: "Variables",
  5: "Pages"
};

