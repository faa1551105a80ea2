"""ACL 2.0: users, policies, and which requests of which user are allowed.

`users` and `acls` are what a broker knows and how it changes, `policies` has which entry decides, `contexts` reads from
a request what it does, and `evaluators` decide. All of it is synchronous; time is passed in.
"""
