# An image with the program, git and Python. .ci/dist builds it.
#   mkdir -p results
#   docker run --rm --user "$(id -u)" --env HOME=/tmp -v "$PWD:/work:ro" -v "$PWD/results:/results" testwright:VERSION run issue.md --repo . --out /results/1
# In a container the sandbox uses Landlock and a system call filter (reduced isolation), which need no privileges.
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE}
RUN command -v git >/dev/null || (apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*)
RUN (getent passwd 1000 >/dev/null || useradd --create-home --uid 1000 testwright) && install -d -o 1000 /work /results /data /cache /artifacts
COPY testwright /usr/local/bin/testwright
USER 1000
WORKDIR /work
ENTRYPOINT ["testwright"]
