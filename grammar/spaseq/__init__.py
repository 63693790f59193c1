"""SPAseq's dialect: its rules of reading and writing, its checks, its slips."""
