"""What goes wrong with the Hub, as one sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from ..errors import KenMeSHError


class HubError(KenMeSHError):
    """The Hub refused, could not be reached, or does not have what was asked for."""


@contextmanager
def hub_sentences(repo_id: str, revision: str | None, sending: bool = False) -> Iterator[None]:
    """Turns what the Hub's library raises into one sentence that says what to do."""
    access = "write to" if sending else "read"
    login = f"log in with `hf auth login` or give a token that may {access} it"
    try:
        yield
    except RevisionNotFoundError as error:
        raise HubError(
            f"{repo_id} has no revision {revision!r}; see its branches and tags on the Hub."
        ) from error
    except RepositoryNotFoundError as error:
        raise HubError(
            f"{repo_id} is not on {constants.ENDPOINT}, or it is private; check the name, {login}."
        ) from error
    except LocalEntryNotFoundError as error:
        raise HubError(
            f"{repo_id} is not complete in the cache and the Hub cannot be asked; pull it once while online."
        ) from error
    except EntryNotFoundError as error:
        where = getattr(getattr(error, "response", None), "url", repo_id)
        raise HubError(
            f"The Hub lists a file of {repo_id} but does not have it ({where}); push the model again."
        ) from error
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise HubError(f"The Hub does not let you {access} {repo_id}; {login}.") from error
        raise HubError(f"The Hub answered for {repo_id}: {error}") from error
    except ValueError as error:
        raise HubError(f"{repo_id}: {error}") from error
    except (HTTPError, OSError, RuntimeError) as error:
        advice = (
            "nothing was published, and what arrived is not sent twice" if sending else "what arrived is kept"
        )
        raise HubError(
            f"The transfer of {repo_id} was interrupted ({error}); try again: {advice}."
        ) from error
