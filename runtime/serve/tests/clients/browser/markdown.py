"""Unit tests of the page's modules, which run in the browser: markdown, server-sent events, scales."""

from .driver import World

RENDER = """
async (sources) => {
  const { MarkdownView } = await import("/assets/js/markdown/render.js");
  const draw = (source) => {
    const root = document.createElement("div");
    new MarkdownView(root).update(source);
    return root.innerHTML;
  };
  return sources.map(draw);
}
"""

# Draws each text as it grows, character by character, and compares it with the text drawn at once.
GROW = """
async (sources) => {
  const { MarkdownView } = await import("/assets/js/markdown/render.js");
  const wrong = [];
  for (const source of sources) {
    const [root, said] = [document.createElement("div"), []];
    const view = new MarkdownView(root, (text) => said.push(text));
    for (let end = 1; end <= source.length; end += 1) {
      view.update(source.slice(0, end));
      const whole = document.createElement("div");
      const once = [];
      const other = new MarkdownView(whole, (text) => once.push(text));
      other.update(source.slice(0, end));
      if (root.innerHTML !== whole.innerHTML) wrong.push([source.slice(0, end), root.innerHTML, whole.innerHTML]);
      if (end === source.length) {
        view.finish();
        other.finish();
        if (said.join("|") !== once.join("|")) wrong.push(["said", said, once]);
      }
    }
  }
  return wrong;
}
"""

LINK = 'rel="noopener noreferrer" target="_blank"'


def link(href: str, text: str) -> str:
    return f'<a href="{href}" {LINK}>{text}</a>'


def cells(tag: str, *found: str, scope: str = "") -> str:
    return "<tr>" + "".join(f"<{tag}{scope}>{cell}</{tag}>" for cell in found) + "</tr>"


# Sources, and what is drawn.
CASES = {
    "a\nb\n\nc": "<p>a<br>b</p><p>c</p>",
    "a  \nb\\\nc": "<p>a<br>b<br>c</p>",
    "# A #\n## B\n###### F\n####### no\n#no": '<h3 class="h1">A</h3><h4 class="h2">B</h4><h6 class="h6">F</h6>'
    "<p>####### no<br>#no</p>",
    "A\n===\nB\n---": '<h3 class="h1">A</h3><h4 class="h2">B</h4>',
    "**b** *i* ***bi*** ~~s~~ __b__ _i_": "<p><strong>b</strong> <em>i</em> <em><strong>bi</strong></em> <del>s</del>"
    " <strong>b</strong> <em>i</em></p>",
    "snake_case_name 2*3*4 2 * 3 * 4": "<p>snake_case_name 2<em>3</em>4 2 * 3 * 4</p>",
    "**a *b** c*": "<p><em><em>a <em>b</em></em> c</em></p>",
    "*a **b* c**": "<p><em>a <em><em>b</em> c</em></em></p>",
    "**open *and": "<p>**open *and</p>",
    "~one~ ~~two": "<p>~one~ ~~two</p>",
    "`a` ``b`c`` ` d ` `open": "<p><code>a</code> <code>b`c</code> <code>d</code> `open</p>",
    "`*a*` *`b*`": "<p><code>*a*</code> *<code>b*</code></p>",
    "\\*a\\* \\<b> \\q": "<p>*a* &lt;b&gt; \\q</p>",
    "&amp; &lt; &#65; &#x42; &nope; &#0;": "<p>&amp; &lt; A B &amp;nope; \ufffd</p>",
    "- a\n- b\n  - c\n    d\n* e": "<ul><li>a</li><li>b<ul><li>c<br>d</li></ul></li></ul><ul><li>e</li></ul>",
    "1. a\n  - b\n  - c\n2. d": "<ol><li>a<ul><li>b</li><li>c</li></ul></li><li>d</li></ol>",
    "- a\n\t- b": "<ul><li>a<ul><li>b</li></ul></li></ul>",
    "3) a\n4) b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "- a\n\n- b": "<ul><li><p>a</p></li><li><p>b</p></li></ul>",
    "- a\n\n  b\n\nc": "<ul><li><p>a</p><p>b</p></li></ul><p>c</p>",
    "a\n- b": "<p>a</p><ul><li>b</li></ul>",
    "in\n1986. Then": "<p>in<br>1986. Then</p>",
    "- [x] a\n- [ ] b": '<ul><li class="task"><input type="checkbox" disabled="" checked="" aria-label="Done">a</li>'
    '<li class="task"><input type="checkbox" disabled="" aria-label="Done">b</li></ul>',
    "> a\n> > b\nc\n\nd": "<blockquote><p>a</p><blockquote><p>b<br>c</p></blockquote></blockquote><p>d</p>",
    "a\n***\n- - -": "<p>a</p><hr><hr>",
    "[a](https://b.c/d_(e) \"t\") [x]()": f'<p><a href="https://b.c/d_(e)" title="t" {LINK}>a</a> x</p>',
    "[**a** `b`](<https://b.c/d e>)": f"<p>{link('https://b.c/de', '<strong>a</strong> <code>b</code>')}</p>",
    "see https://a.b/c. (https://d.e/f)": f"<p>see {link('https://a.b/c', 'https://a.b/c')}. "
    f"({link('https://d.e/f', 'https://d.e/f')})</p>",
    "<https://a.b> <mailto:c@d.e>": f"<p>{link('https://a.b/', 'https://a.b')} {link('mailto:c@d.e', 'mailto:c@d.e')}</p>",
    "![alt](https://a.b/c.png) ![](https://a.b/d)": f"<p>{link('https://a.b/c.png', 'alt')}"
    f" {link('https://a.b/d', 'https://a.b/d')}</p>",
    "[a [b](https://c.d) e](https://f.g)": f"<p>[a {link('https://c.d/', 'b')} e](" + link("https://f.g/", "https://f.g") + ")</p>",
    "[a] [b](open": "<p>[a] [b](open</p>",
    "<b>a</b> <br> c": "<p>&lt;b&gt;a&lt;/b&gt; <br> c</p>",
}

TABLES = {
    "a|b\n-|-:\n1|*2*\n3\n\nc": '<tr><th scope="col">a</th><th class="align-right" scope="col">b</th></tr>',
    "| a | b\\|c |\n|:-|:-:|\n| `d` | |": '<tr><td class="align-left"><code>d</code></td><td class="align-center"></td></tr>',
}

CODE = {
    "```js\na\n  b\n```\nc": ("js", "a\n  b"),
    "~~~~ python title=x\n~~~\n~~~~": ("python", "~~~"),
    "```\nopen\n\n": ("text", "open\n"),
    "    indented\n\n    more": ("text", "indented\n\nmore"),
    "- a\n  ```c\n  x\n  ```": ("c", "x"),
    "> ```\n> quoted\n> ```": ("text", "quoted"),
    "```make\nall:\n\tcc\ta.c\n```": ("make", "all:\n\tcc\ta.c"),
    "- a\n  ```make\n  all:\n  \tcc a.c\n  ```": ("make", "all:\n\tcc a.c"),
    "> ```\n> \tcc a.c\n> ```": ("text", "\tcc a.c"),
    "\tif:\n\t\tcc a.c": ("text", "if:\n\tcc a.c"),
}


def case_markdown_is_drawn(world: World):
    page = world.page()
    for (source, expected), found in zip(CASES.items(), page.evaluate(RENDER, list(CASES)), strict=True):
        assert found == expected, f"{source!r}\nfound    {found}\nexpected {expected}"
    for (source, expected), found in zip(TABLES.items(), page.evaluate(RENDER, list(TABLES)), strict=True):
        assert expected in found, f"{source!r}\nfound    {found}\nexpected {expected}"
    for (source, (language, text)), found in zip(CODE.items(), page.evaluate(RENDER, list(CODE)), strict=True):
        expected = [f"<span>{language}</span>", f"<code>{text}</code></pre>"]
        assert all(part in found for part in expected), f"{source!r}\nfound    {found}\nexpected {expected}"


def case_markdown_grows(world: World):
    page = world.page()
    sources = [*CASES, *TABLES, *CODE, "\n\n".join([*CASES, *TABLES]), "a\r\n\r\n- b\r\n- c\r\n"]
    wrong = page.evaluate(GROW, sources)
    assert not wrong, wrong[:3]


def case_hostile_markdown_ends(world: World):
    """Texts that take exponential or quadratic time in careless parsers, or overflow their stacks."""
    page = world.page()
    count = 20_000
    patterns = ["*", "*a ", "_a* ", "[", "![](", "[a](", "` `` ", "<", "> ", "- ", "- a\n", "|a", "~~a", "\\", "&#1", "(", "1. "]
    sources = [pattern * count for pattern in patterns]
    sources += ["*a " * count + "b*" * count, "[" * count + "](https://a.b)" * count, "# " + "#" * count + "x"]
    sources += ["a|b\n" + "-|" * count, "".join(" " * 2 * depth + "- a\n" for depth in range(500)), "```" + " " * count + "`"]
    sources += ["- " + " " * count + "x", "".join("`" * length + " " for length in range(300))]
    drawn = page.evaluate(RENDER, sources)
    assert len(drawn) == len(sources) and all(drawn)


EVENTS = """
async (text) => {
  const { EventParser } = await import("/assets/js/shared/sse.js");
  const whole = new EventParser().push(text);
  const wrong = [];
  for (let first = 0; first <= text.length; first += 1) {
    for (const second of [first, Math.min(first + 1, text.length), Math.floor((first + text.length) / 2)]) {
      const parser = new EventParser();
      const found = [text.slice(0, first), text.slice(first, second), text.slice(second)].flatMap((part) => parser.push(part));
      if (JSON.stringify(found) !== JSON.stringify(whole)) wrong.push([first, second, found]);
    }
  }
  return { whole, wrong };
}
"""


def case_events_are_read(world: World):
    page = world.page()
    text = (
        "\ufeffdata: a\n\n: ping\n\ndata:b\r\ndata: c\r\n\r\nevent: e\rdata: {\"x\": 1}\r\r"
        "id: 7\ndata\n\nother: x\n\ndata:  two spaces\n\ndata: not ended\n"
    )
    found = page.evaluate(EVENTS, text)
    expected = [("message", "a"), ("message", "b\nc"), ("e", '{"x": 1}'), ("message", ""), ("message", " two spaces")]
    assert [(event["event"], event["data"]) for event in found["whole"]] == expected, found["whole"]
    assert not found["wrong"], found["wrong"][:3]


def case_axes_have_round_steps(world: World):
    page = world.page()
    ticks = "async (max) => (await import('/assets/js/status/scale.js')).ticks(max)"
    expected = {1: [0, 0.5, 1], 3: [0, 1, 2, 3], 17: [0, 5, 10, 15, 20], 100: [0, 50, 100], 0.3: [0, 0.1, 0.2, 0.3]}
    for largest, steps in expected.items():
        assert page.evaluate(ticks, largest) == steps, largest


CASES_HERE = [
    case_markdown_is_drawn,
    case_markdown_grows,
    case_hostile_markdown_ends,
    case_events_are_read,
    case_axes_have_round_steps,
]
