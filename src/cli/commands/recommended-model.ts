import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { bundledQuality, recommendedModel } from '../../core/models/best-model.js'
import { readJson, writeJson } from '../../core/models/cache.js'
import { modelCacheFolder, modelInfo } from '../../core/models/index.js'
import { CommandInput, type CommandOption, exitStatus, type Terminal, UsageError, valued } from '../command.js'
import { pull } from './models.js'

export const recommendedModelOption = {
  'recommended-model': valued(
    'yes|no',
    'Answer to the question that the first run at a terminal asks: whether to download the recommended model and ' +
      'use it instead of the bundled one. Default: the answer that was given, or no.',
    { variable: 'STEMWORK_RECOMMENDED_MODEL' },
  ),
} satisfies Record<string, CommandOption>

const speedWords = {
  fast: 'faster than the song plays',
  medium: 'up to three times the length of a song',
  slow: 'slow',
}

/**
 * Returns the input with the model that the user wants, if no option names one. Asks once, at a terminal and outside of
 * CI, and remembers the answer beside the pulled models.
 *
 * @throws UsageError for an option that is neither yes nor no; StemworkError where it says yes and the model cannot be
 * pulled
 */
export async function withRecommendedModel(input: CommandInput, terminal: Terminal): Promise<CommandInput> {
  const { model, preset } = input.values
  const given = input.text('recommended-model')
  if (given !== undefined && given !== 'yes' && given !== 'no')
    throw new UsageError(`--recommended-model (or STEMWORK_RECOMMENDED_MODEL) must be yes or no, not "${given}".`)
  if (model !== undefined || preset !== undefined || given === 'no') return input
  const { name, installed } = await modelInfo(recommendedModel().facts.name)
  const withModel = new CommandInput({ ...input.values, model: name }, input.positionals, input.settings)
  if (given === 'yes') {
    if (!installed) await pull(name, new CommandInput({}), onStderr(terminal))
    return withModel
  }
  const answer = (await readJson(answerFile())) as { use?: unknown } | undefined
  if (answer !== undefined) return answer.use === true && installed ? withModel : input
  if (!mayAsk(input, terminal)) return input
  return (await isWanted(terminal)) ? withModel : input
}

function mayAsk(input: CommandInput, { stderr }: Terminal): boolean {
  const isInteractive = process.stdin.isTTY && stderr.isTTY === true && !input.isOn('json')
  return isInteractive && !process.env.CI && process.env.STEMWORK_OFFLINE !== '1'
}

async function isWanted(terminal: Terminal): Promise<boolean> {
  const { name, bytes = 0, licence, installed, speed = 'medium' } = await modelInfo(recommendedModel().facts.name)
  const gain = `about ${Math.round(recommendedModel().quality ?? 0)} dB instead of ${Math.round(bundledQuality)}`
  const question =
    `The bundled model has basic quality. ${name} is better: ${(bytes / 1e6).toFixed(0)} MB, ${licence}, ` +
    `${gain} (vocals, published score), ${speedWords[speed]} on two cores.\n` +
    `${installed ? 'Use' : 'Download and use'} it from now on? [Y/n] `
  const answer = await ask(question, terminal)
  // Ctrl-D is no answer: the next run asks again.
  if (answer === undefined) return false
  const use = /^(y|yes|)$/i.test(answer.trim())
  if (use && !installed && !(await isPulled(name, terminal))) return false
  await mkdir(modelCacheFolder(), { recursive: true })
  await writeJson(answerFile(), { use })
  return use
}

/** Pulls the model. A failure is only reported, because the bundled model works. */
async function isPulled(name: string, terminal: Terminal): Promise<boolean> {
  try {
    return (await pull(name, new CommandInput({}), onStderr(terminal))) === exitStatus.done
  } catch (error) {
    const { message } = error as Error
    terminal.stderr.write(`${message}\nContinuing with the bundled model. The next run asks again.\n`)
    return false
  }
}

async function ask(question: string, { stderr }: Terminal): Promise<string | undefined> {
  const dialogue = createInterface({ input: process.stdin, output: stderr })
  dialogue.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const closed = new Promise<undefined>((resolve) => dialogue.once('close', () => resolve(undefined)))
  try {
    return await Promise.race([dialogue.question(question), closed])
  } finally {
    dialogue.close()
  }
}

const answerFile = () => join(modelCacheFolder(), 'recommended-model.json')

/** Keeps stdout for the command's own output. */
const onStderr = ({ stderr }: Terminal): Terminal => ({ stdout: stderr, stderr })
