#!/usr/bin/env bash
# Certificates for the bus, from two authorities of its own:
#
#   certs.sh DIR server NAME HOST...   a server reached by these names and addresses
#   certs.sh DIR client NAME           an edge, a worker, a leaf node or the operator
#
# leaves DIR/NAME.pem and DIR/NAME.key, and makes DIR/servers-ca.pem and DIR/clients-ca.pem
# when they are missing. Two authorities, because whoever has a certificate of the servers'
# may join as one, and hear and say everything. Keep DIR/*-ca.key off the machines that serve.
set -euo pipefail
umask 077
dir=${1:?} kind=${2:?} name=${3:?}
shift 3
mkdir -p "$dir"
cd "$dir"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

ca=${kind}s-ca
if [ ! -f "$ca.pem" ]; then
  new_key "$ca.key"
  openssl req -x509 -new -key "$ca.key" -out "$ca.pem" -days 3650 -subj "/CN=ommer $kind authority" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
fi

case $kind in
server) # a server is the client of the others
  use=serverAuth,clientAuth names=
  for host in "${@:?the names of the server}"; do
    case $host in
    *:* | *[0-9].[0-9]*.[0-9]*.[0-9]*) names+="IP:$host," ;;
    *) names+="DNS:$host," ;;
    esac
  done
  ;;
client) use=clientAuth names="DNS:$name," ;;
*) echo "$0: server or client, not $kind" >&2 && exit 2 ;;
esac

new_key "$name.key"
openssl req -new -key "$name.key" -subj "/CN=$name" |
  openssl x509 -req -CA "$ca.pem" -CAkey "$ca.key" -days 365 -out "$name.pem" -extfile <(
    echo "subjectAltName=${names%,}"
    echo "extendedKeyUsage=$use"
    echo "keyUsage=critical,digitalSignature"
    echo "basicConstraints=critical,CA:FALSE"
  ) 2>/dev/null
