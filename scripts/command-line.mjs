// Prints docs/command-line.md from the help of every command: node scripts/command-line.mjs > docs/command-line.md
import { commands } from '../build/cli/commands.js'
import { commandHelp } from '../build/cli/input/help.js'

console.log(`# Command line

For everybody at a terminal: the reference for every command and option.

This page is generated from the help texts by \`scripts/command-line.mjs\`. After \`npm install stemwork\`, run the
commands with \`npx stemwork\`; in a checkout, with
\`node dist/cli/main.js\`.

The exit status is 0 on success, 1 if something failed, 2 for wrong usage, 130 after Ctrl-C and 143 after SIGTERM;
\`serve\`, \`dev\` and \`worker\`, which run until then, end with 0.
Results go to stdout; progress
and messages go to stderr.`)

for (const [name, { summary, load }] of Object.entries(commands)) {
  console.log(`\n## ${name}\n\n${summary}\n\n\`\`\`\n${commandHelp(await load()).trimEnd()}\n\`\`\``)
}
