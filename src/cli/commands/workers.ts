import type { Worker, WorkerState } from '../../core/engine/engine.js'
import { actionOf, type Command, exitStatus, flag, UsageError } from '../command.js'
import { storeOptions, storeUrls } from '../service/service-storage.js'
import { withEngine } from '../service/store-engine.js'

const states: Record<string, WorkerState> = { cordon: 'cordoned', drain: 'draining', uncordon: 'open' }
const options = ['data', 'store', 'json']

export const command: Command = {
  usage: 'workers <show | cordon | drain | uncordon> [<name>] (--data <dir> | --store <url>)',
  description:
    'Shows the workers of a deployment, and takes individual ones out of service. A worker notices within 30 seconds.',
  positionals: { min: 1, max: 2 },
  options: { ...storeOptions, json: flag('Print JSON.') },
  actions: {
    show: { description: 'Shows the live workers and what they do.', options },
    cordon: { description: 'The worker takes no more jobs and finishes those that it runs.', options },
    drain: {
      description:
        'As cordon, but jobs that still run after the time of its --grace are handed over to other workers, which ' +
        'continue from the kept work.',
      options,
    },
    uncordon: { description: 'The worker takes jobs again.', options },
  },
  async run(input, terminal) {
    const action = actionOf(input, command)
    const state = states[action]
    const name = input.positionals[1]
    if (state && name === undefined)
      throw new UsageError(`Say which worker: stemwork workers ${action} <name>. workers show has the names.`)
    const missing = 'Workers are known by their store. Add --data <dir> or --store <url>.'
    return withEngine(storeUrls(input, missing), terminal, async (engine) => {
      if (state && name !== undefined) await engine.setWorkerState(name, state)
      const workers = await engine.workers()
      const text = () => workers.map(line).join('') || 'No workers.\n'
      terminal.stdout.write(input.isOn('json') ? `${JSON.stringify(workers)}\n` : text())
      return exitStatus.done
    })
  },
}

function line({ owner, state, running, slots, labels }: Worker): string {
  const has = labels.length > 0 ? `, ${labels.join(', ')}` : ''
  return `${owner.padEnd(40)} ${state.padEnd(9)} ${running} of ${slots} slots${has}\n`
}
