# The binary is linked statically against glibc, so the image holds nothing but the binary: no shell, no libraries, no
# certificates. In a cluster the API server's CA comes with the ServiceAccount.
#
# tests/static-binary.sh builds with the flags below and runs the result in an empty root.
FROM docker.io/library/rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# With --target, the flags reach the binary but not the procedural macros, which cannot be static. The target is that of
# the machine that builds.
ENV RUSTFLAGS="-C target-feature=+crt-static"
RUN cargo build --release --locked --bin cascade-guard --target "$(rustc --print host-tuple)" \
    && install -D "target/$(rustc --print host-tuple)/release/cascade-guard" /image/cascade-guard

# The rollout watchdog, an image of its own: `docker build --target watchdog`. It needs git and ssh, and a name for its user,
# without which ssh does not start.
FROM docker.io/library/debian:bookworm-slim AS watchdog
RUN apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 65532 --user-group --home-dir /cache --no-create-home --shell /usr/sbin/nologin watchdog
COPY --from=build /image/ /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/cascade-guard"]
CMD ["watchdog", "run"]

# The guard; the last stage is what is built without a target.
FROM scratch
COPY --from=build /image/ /
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/cascade-guard"]
CMD ["serve"]
