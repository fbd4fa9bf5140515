import { type Command, type CommandEntry, exitStatus, UsageError } from '../command.js'

/** A command as the completion script knows it. */
interface CompletedCommand {
  name: string
  summary: string
  /** `--name` of each option. */
  options: string[]
  /** Its actions, such as `create` of `keys`. */
  actions: string[]
}

const scripts: Record<string, (commands: readonly CompletedCommand[]) => string> = { bash, zsh, fish }

/** @param commands all commands; loaded when the script is requested */
export function completionCommand(commands: () => Record<string, CommandEntry>): Command {
  return {
    usage: 'completion <bash | zsh | fish>',
    description: 'Prints a script that completes commands and options in your shell.',
    positionals: { min: 1, max: 1 },
    options: {},
    notes:
      'bash: stemwork completion bash > ~/.local/share/bash-completion/completions/stemwork\n' +
      'zsh:  stemwork completion zsh > "${fpath[1]}/_stemwork"\n' +
      'fish: stemwork completion fish > ~/.config/fish/completions/stemwork.fish',
    async run(input, { stdout }) {
      const shell = input.first
      const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
      if (!script) throw new UsageError(`There is no completion for ${shell}. Expected one of: bash, zsh, fish.`)
      const known = await Promise.all(
        Object.entries(commands()).map(async ([name, { summary, load }]) => {
          const { options, actions = {} } = await load()
          const names = [...Object.keys(options), 'help'].map((option) => `--${option}`)
          return { name, summary, options: names, actions: Object.keys(actions) }
        }),
      )
      stdout.write(script(known))
      return exitStatus.done
    },
  }
}

function bash(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(
    ({ name, options, actions }) => `    ${name}) words="${[...actions, ...options].join(' ')}" ;;`,
  )
  return `# Completion of stemwork for bash
_stemwork() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${commands.map(({ name }) => name).join(' ')} --help --version"
  else
    case "\${COMP_WORDS[1]}" in
${cases.map((line) => `  ${line}`).join('\n')}
      *) words="" ;;
    esac
    if [[ "$current" != -* ]] && [ "$COMP_CWORD" -gt 2 ]; then words=""; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _stemwork stemwork
`
}

function zsh(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ name, options, actions }) => {
    const first = actions.length > 0 ? `(( CURRENT == 3 )) && compadd -- ${actions.join(' ')}; ` : ''
    return `    ${name}) ${first}[[ $PREFIX == -* ]] && compadd -- ${options.join(' ')} || _files ;;`
  })
  return `#compdef stemwork
# Completion of stemwork for zsh
if (( CURRENT == 2 )); then
  local -a commands=(
${commands.map(({ name, summary }) => `    '${name}:${summary.replaceAll("'", '')}'`).join('\n')}
  )
  _describe command commands
else
  case $words[2] in
${cases.join('\n')}
  esac
fi
`
}

function fish(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ name, summary, options, actions }) => [
    `complete -c stemwork -n __fish_use_subcommand -a ${name} -d '${summary.replaceAll("'", '')}'`,
    ...(actions.length > 0
      ? [`complete -c stemwork -n '__fish_seen_subcommand_from ${name}' -a '${actions.join(' ')}'`]
      : []),
    ...options.map((option) => `complete -c stemwork -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`),
  ])
  return `# Completion of stemwork for fish\n${lines.join('\n')}\n`
}
