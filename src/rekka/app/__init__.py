"""The local page: the same library functions and run folders as the command line, in the browser.

A server on this machine alone (``server``, ``security``) shows pages (``pages``, ``reading``, ``plan``,
``results``, ``comparison``) of what lies in one folder (``workspace``). Work runs in processes of its own
(``jobs``, ``worker``).
"""
