import("./@localSearchIndexroot.D2w0KtzZ.js")
