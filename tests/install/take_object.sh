#!/bin/sh
# OBJECTS=BUILD take_object.sh COMPILER ARGUMENT...: a compiler launcher for ninja. Takes the object from the build folder
# BUILD, which has it at the same place, and compiles where it has none.
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
[ -f "$OBJECTS/$object" ] || exec "$@"
cp "$OBJECTS/$object" "$object"
[ -z "$dependencies" ] || echo "$object:" >"$dependencies"
