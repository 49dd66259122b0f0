"""How each provider signs its deliveries, and where it puts their identifier. One file each."""
