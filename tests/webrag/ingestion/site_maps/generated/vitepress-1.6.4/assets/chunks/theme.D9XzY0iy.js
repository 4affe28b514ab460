import("./VPLocalSearchBox.BOH8lE9c.js")
