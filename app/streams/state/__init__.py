"""The state of one stream, as bytes too, and the steps that samples and labels take it through; brings no server."""
