import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import KeyvRedis from '@keyv/redis'
import { Keyv } from 'keyv'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { keyvStores } from '../../src/adapters/stores/keyv/keyv-stores.js'
import { createEngine } from '../../src/create-engine.js'
import { describeWith } from '../servers/found-server.js'
import { startRedis } from '../servers/redis.js'
import { startSilentProxy } from '../servers/silent-proxy.js'
import { command, startService, Stemwork } from './stemwork.js'

describeWith('a store in Redis', { redis: await startRedis() }, ({ redis }) => {
  afterAll(() => redis.release())

  test('commands change it only while its service is stopped', async () => {
    const keyv = new Keyv({ store: new KeyvRedis(redis.url), namespace: 'stemwork' })
    const engine = createEngine({ ...keyvStores({ keyv }), workflows: [], owner: 'the-service' })
    const store = (...words: string[]) => command([...words, '--store', redis.url])
    expect((await store('keys', 'create')).status).toBe(0)
    await engine.start()
    for (const words of [
      ['schedule', 'pause'],
      ['limits', 'set', '--app', 'default', '--jobs', '3'],
    ])
      expect(await store(...words)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('The service the-service runs on this store'),
      })
    expect(await store('serve', '--port', '0', '--blobs', 'file:/tmp')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The service the-service runs on this store'),
    })
    const { status, stdout } = await store('doctor', '--blobs', 'file:/tmp')
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^problem +storage .*the-service runs on this store/m)])
    await engine.close()
    expect(await store('schedule', 'pause')).toMatchObject({ status: 0, stdout: expect.stringContaining('paused') })
    await keyv.disconnect()
  })

  test('of two services that start at the same moment, one is refused', async () => {
    const words = ['serve', '--port', '0', '--store', redis.url, '--blobs', 'file:/tmp', '--grace', '0']
    const env = { STEMWORK_LINK_SECRET: 'x'.repeat(32) }
    const services = [1, 2].map(() => new Stemwork(words, undefined, env))
    const outcomes = await Promise.all(
      services.map(async (service) =>
        Promise.race([service.printed('stdout', /listening/).then(() => 'runs'), service.finished()]).catch(String),
      ),
    )
    for (const service of services) service.kill('SIGTERM')
    const [first, second] = await Promise.all(services.map((service) => service.finished()))
    expect(outcomes.filter((outcome) => outcome === 'runs')).toHaveLength(1)
    expect(`${first?.stderr}${second?.stderr}`).toMatch(/The service \S+ runs on this store/)
    // The service ended cleanly, so another one may begin.
    expect(await command(['schedule', 'resume', '--store', redis.url])).toMatchObject({ status: 0 })
  })

  test.each(['stemwork:owner', 'stemwork:latest-owner'])(
    'a service that was suspended takes its lock again, and ends if another is in %s',
    async (key) => {
      const env = { STEMWORK_LINK_SECRET: 'x'.repeat(32) }
      const { process: service } = await startService(['--store', redis.url, '--blobs', 'file:/tmp'], env)
      onTestFinished(() => service.kill('SIGKILL'))
      const store = new KeyvRedis(redis.url)
      const client = (await store.getClient()) as Record<'get' | 'set' | 'del', (...words: string[]) => unknown>
      const owner = await client.get('stemwork:owner')
      expect(owner).toEqual(expect.stringContaining(`:${service.child.pid}#`))
      // As if the lock had expired.
      await client.del('stemwork:owner')
      await expect.poll(() => client.get('stemwork:owner'), { timeout: 30_000 }).toBe(owner)

      service.kill('SIGSTOP')
      await client.del('stemwork:owner')
      await client.set(key, 'another:1#service')
      service.kill('SIGCONT')
      const { status, stderr } = await service.finished()
      expect([status, stderr]).toEqual([1, expect.stringMatching(/Another process has taken over.*another:1/s)])
      expect(await client.get('stemwork:latest-owner')).toBe(key === 'stemwork:owner' ? owner : 'another:1#service')
      await client.del('stemwork:owner')
      await store.disconnect()
    },
    60_000,
  )

  test('a service that waits for it as it starts ends soon after it was asked to', async () => {
    const proxy = await startSilentProxy(redis.url)
    const silent = proxy.silence()
    const service = new Stemwork(['serve', '--port', '0', '--store', proxy.url, '--blobs', 'file:/tmp'])
    onTestFinished(() => service.kill('SIGKILL'))
    await silent
    service.kill('SIGTERM')
    // It did not wait for its full answer timeout.
    expect(await service.finished()).toMatchObject({ status: 143, stderr: '' })
    await proxy.close()
  })

  test('a service does not wait for it as it ends', async () => {
    const proxy = await startSilentProxy(redis.url)
    const env = { STEMWORK_LINK_SECRET: 'x'.repeat(32) }
    const words = ['--store', proxy.url, '--blobs', 'file:/tmp', '--grace', '0']
    const { process: service } = await startService(words, env)
    onTestFinished(() => service.kill('SIGKILL'))
    await proxy.silence()
    service.kill('SIGTERM')
    // Closing took less than the time limit for a part; otherwise it would be logged.
    expect((await service.finished()).stderr).not.toContain('did not close within')
    await proxy.close()
    // The service could not release its lock.
    const store = new KeyvRedis(redis.url)
    const client = (await store.getClient()) as { del(key: string): Promise<unknown> }
    await client.del('stemwork:owner')
    await store.disconnect()
  })

  test('a service that was killed on this machine stops none', async () => {
    const keyv = new Keyv({ store: new KeyvRedis(redis.url), namespace: 'stemwork' })
    const { pid } = spawnSync(process.execPath, ['-e', ''])
    const engine = createEngine({ ...keyvStores({ keyv }), workflows: [], owner: `${hostname()}:${pid}` })
    await engine.start()
    expect(await command(['schedule', 'pause', '--store', redis.url])).toMatchObject({ status: 0 })
    await engine.close()
    await keyv.disconnect()
  })
})
