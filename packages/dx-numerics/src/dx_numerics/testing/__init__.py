"""For the tests of packages with compiled functions, not for their users: calls with made inputs and digests of what
they do (calls), random wrong calls (fuzz), and the tests that every registry of calls has to pass (suite)."""
