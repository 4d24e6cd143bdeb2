"""How a study is shown: tables, figures and the HTML page."""
