"""How anything is shown: pages, pictures and colours. They compute nothing."""
