import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
  isRunning,
  makeProcessFolder,
  removeDeadFolders,
  scratchPrefix,
} from '../../core/engine/dispatch/attempt/process-folder.js'
import { StemworkError, storeUnavailable } from '../../core/engine/errors.js'
import type { Logger } from '../../core/engine/ports/logger.js'
import type { workerKind } from '../../core/engine/workers/worker.js'
import { type CommandInput, type CommandOption, flag, UsageError, valued } from '../command.js'
import { type Deployment, type DeploymentUrls, openDeployment } from './deployment.js'
import { configurable } from '../input/configuration.js'
import { linkSecret } from './link-secret.js'
import { makeFolder } from '../files/local-file.js'

/** Where a service stores its state. */
export interface ServiceStorage extends Deployment {
  /** Folder for files of running jobs; undefined: the system's temporary folder. */
  scratchDirectory: string | undefined
  /** Secret that signs links; undefined if a random one for this process will do. */
  secret: string | undefined
}

/** The options of every command that opens a storage. */
export const storageOptions = {
  data: valued('dir', 'Folder in which jobs, files and keys survive restarts. Default: nothing survives.'),
  store: valued(
    'url',
    'Jobs and applications: memory:, sqlite:<path>, postgres://...[?schema=<name>], redis://... (Keyv).',
  ),
  queue: valued(
    'url',
    'How workers are woken: memory: (this process only), postgres: (the Postgres of --store, and its default), ' +
      'postgres://... (a direct address, if --store goes through a pooler) or redis://...[?prefix=<name>] ' +
      '(BullMQ; needs a Postgres store).',
  ),
  blobs: valued('url', 'Files: file:<folder> or s3://<bucket>[/<prefix>][?endpoint=<url>&region=<name>].'),
} satisfies Record<string, CommandOption>

export const privateInputsOption: CommandOption = flag('Allow input URLs that lead to this machine or its network.', {
  inCode: 'fetch.allowPrivate',
})

/** Options that name the store of an existing service. */
export const storeOptions = configurable({
  data: valued('dir', 'Data folder of the service, as its --data. The service must be stopped.'),
  store: valued('url', 'Store of the service, as its --store. Unless it is Postgres, the service must be stopped.'),
})

export function deploymentUrls(input: CommandInput): DeploymentUrls {
  return {
    data: input.text('data'),
    store: input.text('store'),
    queue: input.text('queue'),
    blobs: input.text('blobs'),
  }
}

/** The URLs of a store without files. @throws UsageError with the text `missing` if no option names a store */
export function storeUrls(input: CommandInput, missing: string): DeploymentUrls {
  const { data, store } = deploymentUrls(input)
  if (data === undefined && store === undefined) throw new UsageError(missing)
  // A durable store requires durable files beside it; none is read here, so any folder will do.
  return { data, store, blobs: data === undefined ? 'file:.' : undefined }
}

/** @throws StemworkError if the folder of a service is missing: a new one would be empty */
export function requireData({ data }: DeploymentUrls): void {
  if (data !== undefined && !existsSync(data))
    throw new StemworkError(
      'NOT_FOUND',
      `There is no folder "${data}". Check --data; the current folder is ${process.cwd()}.`,
    )
}

/** Runs `use` with the store of a service. */
export async function withStore<Result>(
  urls: DeploymentUrls,
  logger: Logger,
  use: (storage: ServiceStorage) => Promise<Result>,
): Promise<Result> {
  const storage = await openStorage(urls, logger)
  try {
    await refuseRunning(storage)
    return await use(storage)
  } finally {
    await storage.close()
  }
}

/**
 * Unlike a SQLite file, a Keyv store can be opened by two processes, which would overwrite each other's changes. The
 * list of workers also reveals programs that embed the engine and take no lock.
 *
 * @throws StemworkError for such a store on which a service runs
 */
export async function refuseRunning({ parts, lock }: Pick<Deployment, 'parts' | 'lock'>): Promise<void> {
  if (!lock) return
  // Only its type is imported: the value would split a chunk that every import of the package loads.
  const kind: typeof workerKind = 'worker'
  const workers = await parts.jobs.documents.list(kind, { limit: 100 })
  const other = workers.map(({ key }) => key).find((owner) => !hasEndedHere(owner)) ?? (await lock.take(hasEndedHere))
  if (other === undefined) return
  throw storeUnavailable(
    `The service ${other.replace(/#.*/, '')} runs on this store, on which only one process may work at a time. Stop ` +
      'it, then try again; if it was killed, in a minute and a half.',
  )
}

/** Whether the owner was a process of this machine that has ended: its worker stays listed for three leases. */
function hasEndedHere(owner: string): boolean {
  const [, host, pid] = /^(.*):(\d+)(#|$)/.exec(owner) ?? []
  // In a container, a process may have the same id as its predecessor.
  return host === hostname() && (Number(pid) === process.pid || !isRunning(Number(pid)))
}

/** Opens the storage that the URLs name, or, without URLs, one that ends with the process. */
export async function openStorage(urls: DeploymentUrls, logger: Logger): Promise<ServiceStorage> {
  const { data } = urls
  const root = data === undefined ? await passingFolder(logger) : resolve(data)
  await makeFolder(root, 0o700)
  warnOfOther(root, urls, logger)
  // Without --data, files are in a temporary folder that is removed with the process: a song's stems are too large to
  // keep in memory.
  const isPassing = data === undefined && urls.store === undefined
  const deployment = await openDeployment(
    isPassing ? { ...urls, blobs: urls.blobs ?? `file:${join(root, 'blobs')}` } : urls,
    logger,
  )
  try {
    return {
      ...deployment,
      scratchDirectory: await scratchFolder(root, urls),
      secret: data === undefined ? undefined : await linkSecret(join(root, 'link-secret')),
    }
  } catch (error) {
    await deployment.close()
    throw error
  }
}

/** Warns of a changed store: the service knows none of its former keys and jobs, and its users would not know why. */
function warnOfOther(root: string, { store }: DeploymentUrls, logger: Logger): void {
  const ours = join(root, 'stemwork.db')
  if (store === undefined || !existsSync(ours) || resolve(store.replace(/^sqlite:/, '')) === ours) return
  logger.warn(
    { unused: ours },
    'The data folder has jobs and keys of its own, which are not used because --store names another place. To use ' +
      'them, leave --store out; otherwise move the file away.',
  )
}

const shortestSecret = 32

/**
 * The secrets of a service's links, the first of which signs: given, kept in the data folder, or random for this
 * process.
 *
 * @param given separated by commas
 * @throws UsageError for a short secret, and where links must work in other processes or after a restart but there is
 * no lasting secret.
 */
export function requiredSecrets(storage: ServiceStorage, given: string | undefined): string[] {
  const secrets = given ? given.split(',').map((each) => each.trim()) : []
  const short = secrets.find(({ length }) => length < shortestSecret)
  if (short !== undefined)
    throw new UsageError(
      `Each secret in STEMWORK_LINK_SECRET must have at least ${shortestSecret} characters, not ${short.length}. ` +
        'Commas separate secrets. Make one: openssl rand -hex 32',
    )
  if (secrets.length > 0) return secrets
  if (storage.secret === undefined && storage.durable) {
    throw new UsageError(
      'This store outlives the process, and so must the links: set --data <dir>, or the same STEMWORK_LINK_SECRET ' +
        'on every node.',
    )
  }
  return [storage.secret ?? randomBytes(32).toString('hex')]
}

const passingPrefix = 'stemwork-serve'

async function passingFolder(logger: Logger): Promise<string> {
  await removeDeadFolders(tmpdir(), passingPrefix, logger)
  const root = await makeProcessFolder(tmpdir(), passingPrefix)
  process.once('exit', () => rmSync(root, { recursive: true, force: true }))
  return root
}

async function scratchFolder(root: string, { data, store }: DeploymentUrls): Promise<string | undefined> {
  if (data !== undefined && store !== undefined) return undefined
  const scratch = join(root, 'scratch')
  await mkdir(scratch, { recursive: true, mode: 0o700 })
  // Only this process uses the store beside it, so leftovers belong to a process that was killed.
  const leftover = (await readdir(scratch)).filter((name) => name.startsWith(scratchPrefix))
  for (const name of leftover) await rm(join(scratch, name), { recursive: true })
  return scratch
}
