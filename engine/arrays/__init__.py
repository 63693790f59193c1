"""Groups of arrays, each declared once (`declared`)."""
