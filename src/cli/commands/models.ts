import { createInterface } from 'node:readline/promises'
import { StemworkError } from '../../core/engine/errors.js'
import {
  bestModel,
  type BestModelWishes,
  checkAddresses,
  listModels,
  modelInfo,
  type ModelSummary,
  pullModel,
  removeModel,
  resolveModel,
  verifyModel,
} from '../../core/models/index.js'
import { listPresets, type ModelPreset, modelPreset, modelsOfPreset } from '../../core/models/presets.js'
import { recommendedModel, recommendedModelName } from '../../core/models/best-model.js'
import { type Command, CommandInput, exitStatus, flag, type Terminal, UsageError } from '../command.js'
import { onInterruption } from '../terminal/interruption.js'
import { nearest } from '../../core/engine/workflow/nearest.js'
import { ProgressLine } from '../terminal/progress-line.js'

type Action = (name: string, input: CommandInput, terminal: Terminal) => Promise<number>

const actions: Record<string, Action> = {
  async info(name, input, terminal) {
    const info = await modelInfo(name)
    return print(terminal, input, info, () => details(info))
  },
  pull,
  async verify(name, input, terminal) {
    const { manifest, paths } = await verifyModel(name)
    return print(
      terminal,
      input,
      { name: manifest.name, paths, verified: true },
      () => `${name}: size and sha256 are correct.\n`,
    )
  },
  async path(name, input, terminal) {
    const { manifest, paths } = await resolveModel(name)
    return print(terminal, input, { name: manifest.name, paths }, () => paths.map((path) => `${path}\n`).join(''))
  },
  async remove(name, input, terminal) {
    const removed = await removeModel(name)
    return print(terminal, input, { name, removed }, () =>
      removed ? `${name} was removed.\n` : `${name} was not installed.\n`,
    )
  },
}

export const command: Command = {
  usage: 'models list | presets | info | pull | verify | path | remove | check [name or manifest] [options]',
  description:
    'Shows, fetches and removes models. The name is "embedded", a known model, "recommended", "best" or the path of ' +
    'a manifest (.json).',
  positionals: { min: 1, max: 2 },
  options: {
    'accept-licence': flag('Accept the terms of the model, if it has any; asked once per model.'),
    commercial: flag('With pull best, presets and pull of a preset: only models whose licence allows commercial use.'),
    fast: flag('With pull best: only models that are faster than real time on two processor cores.'),
    offline: flag('Never use the network. Also: STEMWORK_OFFLINE=1.'),
    json: flag('Print JSON on stdout.'),
  },
  actions: {
    list: { description: 'Lists the known models with size, speed, score and licence.', options: ['json'] },
    presets: {
      description: 'Lists the presets: known models that work together under one name.',
      options: ['commercial', 'json'],
    },
    info: { usage: '<model>', description: 'Shows all details of a model.', options: ['json'] },
    pull: {
      usage: '<model, preset, recommended or best>',
      description: 'Downloads a model and checks it. Continues where an earlier download stopped.',
      options: ['accept-licence', 'commercial', 'fast', 'offline', 'json'],
    },
    verify: { usage: '<model>', description: 'Checks the files of a model against their hashes.', options: ['json'] },
    path: { usage: '<model>', description: 'Prints where the files of a model are.', options: ['json'] },
    remove: { usage: '<model>', description: 'Removes a pulled model.', options: ['json'] },
    check: {
      usage: '[model]',
      description:
        'Downloads the files of one or all known models from each address, checks sizes and hashes, and keeps nothing.',
      options: ['offline', 'json'],
    },
  },
  notes:
    '"pull recommended" fetches the best model that is small, not slow, and licensed for commercial use.\n' +
    '"pull best" fetches the model with the best published score; elsewhere "best" is the best model that was ' +
    'pulled.\n' +
    "Models are stored in the folder STEMWORK_MODELS, by default in the platform's cache folder.\n" +
    'STEMWORK_MODEL_MIRROR names a folder or base URL that has all files under their own names; it replaces their ' +
    'addresses.',
  async run(input, terminal) {
    const action = input.first
    const name = input.positionals[1]
    if (action === 'list') {
      if (name !== undefined) throw new UsageError('models list takes no name.')
      const models = await listModels()
      return print(terminal, input, models, () => table(models))
    }
    if (action === 'presets') {
      const presets = listPresets({ commercial: input.isOn('commercial') })
      return print(terminal, input, presets, () => presets.map(presetText).join(''))
    }
    if (action === 'check') return check(name === undefined ? undefined : [name], input, terminal)
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined
    if (!act) {
      const match = nearest(action, ['list', 'presets', 'check', ...Object.keys(actions)])
      throw new UsageError(
        `There is no "models ${action}".${match ? ` Did you mean ${match}?` : ''} Expected one of: list, presets, ` +
          `check, ${Object.keys(actions).join(', ')}.`,
      )
    }
    if (name === undefined)
      throw new UsageError(`models ${action} needs the name of a model; stemwork models list shows them.`)
    try {
      return await act(name, input, terminal)
    } catch (error) {
      if (!input.isOn('json') || !StemworkError.is(error)) throw error
      const { code, message, details } = error
      terminal.stdout.write(`${JSON.stringify({ error: { code, message, details } }, null, 2)}\n`)
      return exitStatus.failed
    }
  },
}

/** Downloads a model, with its licence and progress on stderr. */
export async function pull(choice: string, input: CommandInput, terminal: Terminal): Promise<number> {
  if (listPresets().some(({ name }) => name === choice)) return pullPreset(choice, input, terminal)
  const wishes = { commercial: input.isOn('commercial'), fast: input.isOn('fast') }
  if (choice !== 'best' && (wishes.commercial || wishes.fast))
    throw new UsageError('--commercial and --fast choose among models: use them with models pull best.')
  const name = chosenName(choice, wishes)
  const info = await modelInfo(name)
  const { terms, termsAccepted, installed } = info
  if (!installed) terminal.stderr.write(`${name}: ${size(info)}, licence: ${info.licence}\n`)
  let acceptLicence = input.isOn('accept-licence')
  if (terms !== undefined && !installed && termsAccepted !== true) {
    if (acceptLicence) terminal.stderr.write(`${terms}\n`)
    else acceptLicence = await isAccepted(terms, terminal)
  }
  const interruption = onInterruption((status) => process.exit(status))
  const progress = new ProgressLine(terminal.stderr)
  try {
    const { manifest, paths } = await pullModel(name, {
      acceptLicence,
      offline: input.isOn('offline') ? true : undefined,
      signal: interruption.signal,
      onProgress: ({ file, bytesDone, bytesTotal }) =>
        progress.show(`Downloading ${file}`, bytesTotal ? bytesDone / bytesTotal : 0),
    })
    progress.clear()
    const summary = {
      name: manifest.name,
      paths,
      sha256: manifest.sha256,
      licence: manifest.licence,
      downloaded: !installed,
    }
    return print(
      terminal,
      input,
      summary,
      () => `${name} ${installed ? 'was already installed' : 'is ready'}: ${paths.join(', ')}\n`,
    )
  } catch (error) {
    progress.clear()
    const status = interruption.status()
    if (status === undefined) throw error
    terminal.stderr.write('Stopped. The received bytes are kept; run the same command to continue.\n')
    return status
  } finally {
    interruption.release()
  }
}

/** Resolves `best` and `recommended` to the name of a model. */
function chosenName(choice: string, wishes: BestModelWishes): string {
  if (choice === 'best') return bestModel(wishes)
  return choice === recommendedModelName ? recommendedModel().facts.name : choice
}

/** Pulls all models of a preset, one after the other. */
async function pullPreset(name: string, input: CommandInput, terminal: Terminal): Promise<number> {
  const preset = modelPreset(name, { commercial: input.isOn('commercial') })
  const { commercial: _checked, ...values } = input.values
  for (const model of modelsOfPreset(preset)) {
    const status = await pull(model, new CommandInput(values), terminal)
    if (status !== exitStatus.done) return status
  }
  return exitStatus.done
}

async function check(names: string[] | undefined, input: CommandInput, terminal: Terminal): Promise<number> {
  const checks = []
  for await (const each of checkAddresses(names, { offline: input.isOn('offline') || undefined })) {
    checks.push(each)
    if (!input.isOn('json'))
      terminal.stdout.write(
        `${each.problem === undefined ? 'ok     ' : 'FAILED '} ${each.model}: ${each.problem ?? each.address}\n`,
      )
  }
  if (input.isOn('json')) terminal.stdout.write(`${JSON.stringify(checks, null, 2)}\n`)
  else if (checks.length === 0)
    terminal.stdout.write(`${String(names)} has no addresses: its files are on this machine.\n`)
  return checks.some(({ problem }) => problem !== undefined) ? exitStatus.failed : exitStatus.done
}

/** Asks the user. Scripts cannot answer; they pass `--accept-licence`. */
async function isAccepted(terms: string, { stderr }: Terminal): Promise<boolean> {
  if (!process.stdin.isTTY || !stderr.isTTY) return false
  const dialogue = createInterface({ input: process.stdin, output: stderr })
  try {
    return /^y(es)?$/i.test((await dialogue.question(`${terms} Accept? [y/N] `)).trim())
  } finally {
    dialogue.close()
  }
}

function print(terminal: Terminal, input: CommandInput, result: unknown, text: () => string): number {
  terminal.stdout.write(input.isOn('json') ? `${JSON.stringify(result, null, 2)}\n` : text())
  return exitStatus.done
}

function table(models: readonly ModelSummary[]): string {
  const rows = models.map((model) => [
    model.name,
    model.architecture,
    size(model),
    model.speed ?? '-',
    model.installed ? 'installed' : '',
    model.score ?? '-',
    model.licence,
  ])
  const head = ['NAME', 'ARCHITECTURE', 'SIZE', 'SPEED', '', 'SCORE (vocals / accompaniments)', 'LICENCE']
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function presetText(preset: ModelPreset): string {
  const { name, description, models, ensemble, next } = preset
  const together = models.length > 1 ? ` (${ensemble ?? 'avg_wave'})` : ''
  return `${name}: ${description}\n  ${models.join(' + ')}${together}${next ? `, then ${next.model}` : ''}\n`
}

function details(model: ModelSummary): string {
  const { name, architecture, stems, speed, score, note, licence, terms, termsAccepted, addresses, installed, folder } =
    model
  const lines: [string, string | undefined][] = [
    ['name', name],
    ['architecture', architecture],
    ['stems', stems.join(', ')],
    ['note', note],
    ['size', size(model)],
    ['speed', speed],
    ['score', score],
    ['licence', licence],
    ['terms', terms && `${terms}${termsAccepted ? ' (accepted)' : ''}`],
    ['from', [...new Set(addresses.map((address) => address.split('#')[0]))].join('\n              ') || undefined],
    ['installed', installed ? folder : `no; run stemwork models pull ${name}`],
  ]
  return lines.flatMap(([label, text]) => (text === undefined ? [] : [`${label.padEnd(12)}  ${text}\n`])).join('')
}

function size({ bytes, aboutBytes }: ModelSummary): string {
  if (bytes === undefined) return aboutBytes === undefined ? '-' : `~${(aboutBytes / 1e6).toFixed(1)} MB`
  return `${(bytes / 1e6).toFixed(1)} MB`
}
