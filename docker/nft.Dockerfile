# The helper that cuts traffic between servers of a pod (image tag locktopus/nft:1), for machines
# that can reach a registry. Elsewhere scripts/build-images makes the same from packages.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends nftables \
    && rm -rf /var/lib/apt/lists/*
CMD ["sleep", "infinity"]
