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

FROM scratch
COPY --from=build /image/ /
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["/cascade-guard"]
CMD ["serve"]
