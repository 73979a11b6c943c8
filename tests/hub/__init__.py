"""A Hugging Face Hub of the tests' own on 127.0.0.1, for the unmodified `huggingface_hub` client.

The fixture `hub` (tests/conftest.py) starts one for a test and points the client to it, in this process and, by
`hub.env`, in others. Its user is `hub.user`, whose token is `hub.token`; the user may write to that namespace and to
the organisation `acme`. Xet is off in the client: files go by LFS, which is the path that is served here.

    hub.add("acme/drafter", folder)          a repository with the files of a folder, or of a dict of bytes or `Blob`
    hub.repos["acme/drafter"]                its `Repo`: `head()`, `files()`, `commits`, `refs`, `private`, `gated`
    hub.rename("acme/drafter", "acme/new")   the old name redirects
    hub.log_in(False)                        the client has no token; `hub.log_in(token="hf_...")` has that one
    hub.publishers["job"] = "acme/drafter"   a CI job with the id token `job` may publish there
    hub.offline()                            the client has HF_HUB_OFFLINE=1

    hub.faults.append(Fault("POST .*/commit/", status=503))                     the first commit fails
    hub.faults.append(Fault("POST .*/commit/", lose_answer=True))               it is made, but nobody is told
    hub.faults.append(Fault("PUT /objects/", drop_after=1000, times=None))      every upload breaks off
    hub.faults.append(Fault("GET .*/resolve/", truncate_to=100, skip=1))        the second answer is cut short
    (also headers=, html=, ignore_range=, delay=; see `Fault`)

    hub.log          every request: method, path, status, bytes received and sent, headers without the token
    hub.writes       those that ask the Hub to change something
    hub.sent         bytes sent in all, headers included; hub.clear_log() starts anew

What it is strict about: LFS objects must be there, of the size and SHA-256 named, before a commit may point to them;
`parentCommit` must be the head; blob ids are git's. A repository has `.gitattributes` from its first commit, as on
the Hub.
"""

from tests.hub.faults import Fault, Logged
from tests.hub.hub import LoopbackHub
from tests.hub.store import Blob, Repo

__all__ = ["Blob", "Fault", "Logged", "LoopbackHub", "Repo"]
