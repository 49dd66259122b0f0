"""The site under attack: what is served, who serves it, and the lines between them."""
