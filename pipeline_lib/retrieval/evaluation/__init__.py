"""How well systems find: test collections, rankings and their measures."""
