#!/usr/bin/env node
/*
 * The `holdfast` command. This file is plain JavaScript that any Node since 12 can parse: it looks at the version before
 * it imports anything, so that an old Node is told what is wrong instead of failing on a built-in it does not have.
 *
 * Exit status 1 with one line on stderr, marked by its code:
 *   [node-version]  this Node is older than the one the package needs
 *   [not-built]     dist/ is missing: the package was not installed by `npm ci`, or the build was removed
 * Every other status is the command's own.
 */

var NODE_NEEDED = [22, 13];

function fail(code, message) {
  process.stderr.write("holdfast: " + message + " [" + code + "]\n");
  process.exitCode = 1;
}

function isNodeTooOld() {
  var parts = process.versions.node.split(".").map(Number);
  if (parts[0] !== NODE_NEEDED[0]) return parts[0] < NODE_NEEDED[0];
  return parts[1] < NODE_NEEDED[1];
}

/*
 * Two warnings that say nothing to who runs the command are left out, and no other. Node 22 calls node:sqlite experimental. The
 * gRPC client offers the host of the address to TLS as a server name, which Node deprecates (DEP0123) where that is an IP address.
 */
function leaveOutWarnings() {
  var emitWarning = process.emitWarning;
  process.emitWarning = function (warning, type, code) {
    var isAboutSqlite = type === "ExperimentalWarning" && String(warning).indexOf("SQLite") === 0;
    var isAboutServerName = type === "DeprecationWarning" && code === "DEP0123";
    if (!isAboutSqlite && !isAboutServerName) emitWarning.apply(process, arguments);
  };
}

function start() {
  var entry = new URL("../dist/cli/main.js", import.meta.url).href;
  import(entry).catch(function (error) {
    if (error && error.code === "ERR_MODULE_NOT_FOUND" && error.url === entry) {
      fail("not-built", "the program has not been built; run `npm ci` in its folder first");
      return;
    }
    throw error;
  });
}

if (isNodeTooOld()) {
  fail("node-version", "needs Node " + NODE_NEEDED.join(".") + " or newer; this is Node " + process.versions.node);
} else {
  leaveOutWarnings();
  start();
}
