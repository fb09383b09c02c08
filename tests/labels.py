"""Labels that somebody may have written into a domain or a model file, to break what draws them."""

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'--><!--]]>",
    "</style></svg></title>",
    "\x00\x07\x1b[31m\r\n",
    "\u202egnp.exe\u2066",
    "&lt;",
    "\ufffe\uffff\ud800",
    "x" * 900,  # names and declared values have at most 1,000 letters
    "漢" * 60,
]
