#!/usr/bin/env node
import { nodeVersionRemedy } from './terminal/node-version.js'

// Checked before anything else is loaded: an older Node lacks what the program imports, and would name only the first
// thing that is missing.
const remedy = nodeVersionRemedy()
if (remedy === undefined) await (await import('./program.js')).runProgram()
else {
  process.stderr.write(`stemwork: This is Node ${process.versions.node}, which is too old. ${remedy}\n`)
  process.exitCode = 1
}
