"""The documentation site; `make docs` copies documents and notebooks beside this file first."""

from docutils import nodes

from advisor import __version__

project = "Kafka replication advisor"
author = "Kafka replication advisor contributors"
version = release = __version__
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
html_theme = "furo"
html_title = f"{project} {version}"
html_static_path = ["_static"]
html_css_files = ["theme.css"]
html_js_files = ["theme.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
exclude_patterns = ["_templates"]
# Notebooks are shown as they are stored.
nb_execution_mode = "off"
# No page may need an outside address: no CDN for widgets or formulas.
nb_ipywidgets_js = {}
html_math_renderer = "plain"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
autosummary_generate = True
templates_path = ["_templates"]
autodoc_typehints = "none"
# Methods follow with their examples, as `:members:` lists them.
numpydoc_show_class_members = False
# Notebooks may skip a level of headings, and hold outputs that HTML has no use for.
suppress_warnings = ["mystnb", "myst.header", "myst.xref_missing", "misc.highlighting_failure"]


def setup(app):
    """Show formulas as they are written: MathJax would be loaded from a CDN."""

    def visit(self, node):
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode

    app.add_html_math_renderer("plain", (visit, None), (visit, None))
