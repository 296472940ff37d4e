#!/usr/bin/env bash
# Builds the CPU image on a machine without a container engine, runs it, and translates through it.
#
#   apt-get install buildah debootstrap && deploy/try-image.sh
#
# Needs Debian, root, and 2 GB of disk. The base image is made by debootstrap under the name that the
# Dockerfile asks for, so no image registry is needed. The server runs as the image's user, without any
# capability, on a read-only root file system and with nothing writable mounted; it uses this machine's
# network: NMT_PORT and NMT_METRICS_PORT move its ports.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly BASE=docker.io/library/python:3.11-slim-bookworm
readonly PACKAGES=python3,python3-venv,python3-pip,ca-certificates,passwd
readonly IMAGE=localhost/attention-nmt:cpu
readonly CERTIFICATES=/etc/ssl/certs/ca-certificates.crt
export STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}" BUILDAH_ISOLATION=chroot

# What Debian's slim images hold: no documentation, no translations.
make_base() {
    local folder container
    folder=$(mktemp --directory)
    debootstrap --variant=minbase --include="$PACKAGES" bookworm "$folder" > /dev/null
    rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/* \
        "$folder"/usr/share/{doc,info,locale,man}/*
    cp "$CERTIFICATES" "$folder$CERTIFICATES"
    container=$(buildah from scratch)
    buildah add --quiet "$container" "$folder" /
    buildah config --env PIP_CERT="$CERTIFICATES" "$container"
    buildah commit --quiet --rm "$container" "$BASE"
    rm -r "$folder"
}

field() { buildah inspect --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" "$container" | grep .; }

# Runs a command as an engine would run it with --read-only --cap-drop ALL --security-opt no-new-privileges.
in_image() {
    # shellcheck disable=SC2016  # the inner shell expands these
    exec unshare --mount --pid --fork --kill-child -- bash -ec '
        root=$1 user=$2 && shift 2
        mount --bind "$root" "$root"
        mount --bind -o ro /dev "$root/dev"
        mount --bind -o ro /etc/hosts "$root/etc/hosts"
        mount -t proc -o ro proc "$root/proc"
        mount -o remount,bind,ro "$root"
        exec chroot "$root" setpriv --reuid="${user%:*}" --regid="${user#*:}" --clear-groups \
            --bounding-set=-all --inh-caps=-all --no-new-privs -- env --ignore-environment "$@"
    ' in_image "$root" "$user" "${environment[@]}" "$@"
}

say() { printf '\n== %s\n' "$*"; }

buildah inspect --type image "$BASE" > /dev/null 2>&1 || { say "Making the base image" && make_base; }
say "Building"
buildah bud --quiet --pull-never --format docker --layers --target cpu --tag "$IMAGE" .
buildah images --filter reference="$BASE" --filter reference="$IMAGE" \
    --format '{{.Name}}:{{.Tag}}  {{.Size}}'

container=$(buildah from --pull-never "$IMAGE")
root=$(buildah mount "$container")
server=
# shellcheck disable=SC2329  # called by the trap
cleanup() {
    [ -z "$server" ] || kill -KILL "$server" 2> /dev/null || true
    buildah umount "$container" > /dev/null
    buildah rm "$container" > /dev/null
}
trap cleanup EXIT
touch "$root/etc/hosts"  # an engine brings its own
user=$(buildah inspect --format '{{.Docker.Config.User}}' "$container")
port=${NMT_PORT:-50051}
mapfile -t environment < <(field Env)
environment+=("NMT_PORT=$port" "NMT_METRICS_PORT=${NMT_METRICS_PORT:-9464}")
mapfile -t command < <(field Entrypoint; field Cmd)
mapfile -t check < <(field Healthcheck.Test | tail --lines=+2)  # without CMD

say "Serving as ${user}: ${command[*]}"
in_image "${command[@]}" &
server=$!

say "Until it is healthy: ${check[*]}"
for (( tries = 0; tries < 60; tries++ )); do
    kill -0 "$server"
    (in_image "${check[@]}") && break
    sleep 1
done
(( tries < 60 ))
process=$(xargs < "/proc/$server/task/$server/children")
grep -E '^(Uid|Gid|CapEff|CapBnd|NoNewPrivs|VmHWM)' "/proc/$process/status"

say "Writing anywhere fails"
for folder in / /srv /models /tmp; do
    if (in_image python -c "open('$folder/file', 'w')") 2>&1 | tail --lines=1; then
        exit 1
    fi
done

say "Translating"
(in_image "${command[@]::${#command[@]}-1}" translate --server "localhost:$port" "I lost my umbrella on the train yesterday.")

say "SIGTERM"
kill -TERM "$process"
status=0
wait "$server" || status=$?
server=
echo "exit code $status"
exit "$status"
