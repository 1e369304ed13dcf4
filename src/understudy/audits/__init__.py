"""The auditor: methods are run on small tables made to betray them, and their claims are refuted where they can be."""
