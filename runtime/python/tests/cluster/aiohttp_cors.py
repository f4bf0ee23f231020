"""Hides a package that only Ray's dashboard needs. Without it, the agent on each node is the small one, which does nothing."""

raise ModuleNotFoundError("the tests look at no dashboard")
