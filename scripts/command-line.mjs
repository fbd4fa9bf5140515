// Prints docs/command-line.md from the help of every command: node scripts/command-line.mjs > docs/command-line.md
import { commands } from '../dist/cli/commands.js'
import { commandHelp } from '../dist/cli/help.js'

console.log(`# Command line

Made from the help of the commands by \`scripts/command-line.mjs\`. After \`npm install stemwork\` run them with \`npx stemwork\`; in a checkout, with
\`node dist/cli/main.js\`.

The exit status is 0 when all is done, 1 when something failed, 2 when a command was not understood, 130 after Ctrl-C and 143 after SIGTERM. Results go to stdout, progress
and messages to stderr.`)

for (const [name, { summary, load }] of Object.entries(commands)) {
  console.log(`\n## ${name}\n\n${summary}\n\n\`\`\`\n${commandHelp(await load()).trimEnd()}\n\`\`\``)
}
