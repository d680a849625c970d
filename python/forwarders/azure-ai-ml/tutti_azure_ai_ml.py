"""Says what to do where azure.identity is not installed, which scripts of Azure ML's SDK import. Every
Python of the environment runs this as it starts."""
import sys


class LastFinder:
    """Stands behind all others, so that the package is found wherever it is."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "azure.identity":
            raise ModuleNotFoundError(
                "azure.identity is not installed: pip install azure-identity, or leave it out: MLClient takes "
                "None as its credential, since tutti's service has a token of its own", name=name)
        return None


sys.meta_path.append(LastFinder)
