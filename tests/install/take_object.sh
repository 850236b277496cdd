#!/bin/sh
# OBJECTS=BUILD [BELOW=FOLDER] [COMPILED=REGEX] take_object.sh COMPILER ARGUMENT...: a compiler launcher for ninja. Takes the
# object from the build folder BUILD, which has it at the same place, but for FOLDER/ before it, and compiles where it has
# none, or where the object's name matches REGEX.
set -eu
object='' dependencies='' previous=''
for argument in "$@"; do
  case $previous in
    -o) object=$argument ;;
    -MF) dependencies=$argument ;;
  esac
  previous=$argument
done
case $object in
  *.o) ;;
  *) exec "$@" ;;
esac
taken="$OBJECTS/${object#"${BELOW:-.}/"}"
[ -f "$taken" ] || exec "$@"
[ -z "${COMPILED:-}" ] || ! echo "$object" | grep -qE "$COMPILED" || exec "$@"
cp "$taken" "$object"
[ -z "$dependencies" ] || echo "$object:" >"$dependencies"
