"""SPAseq for users: its matches as objects, columns, text and files, its explanations."""
