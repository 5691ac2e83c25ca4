"""Student networks in torch; they import each other alone, by relative imports, since exports copy them."""
