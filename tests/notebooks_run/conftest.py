"""A Jupyter that no setting of the user reaches."""

import pytest


@pytest.fixture
def own_jupyter(tmp_path, monkeypatch):
    """No setting and no kernel of the user: `python3` is then the Python that runs this test."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
