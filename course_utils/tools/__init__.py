"""For maintainers and the make targets: notebooks, export, gallery, other processors, other seeds."""
