// applications.mjs: an application store on the same journal.
import { plainCopy } from 'stemwork/adapter'
import { openJournal } from './journal.mjs'

/** @typedef {import('stemwork/adapter').Application} Application */
/** @typedef {import('stemwork/adapter').ApiKey} ApiKey */

/** @param {{ path: string }} options */
export async function fileApplications({ path }) {
  const journal = await openJournal(path)
  const put = (/** @type {string} */ key, /** @type {unknown} */ value) => {
    const given = plainCopy(value)
    return journal.exclusively(() => journal.write([[key, given]]))
  }
  const get = (/** @type {string} */ key) => plainCopy(/** @type {any} */ (journal.values.get(key)))
  const list = (/** @type {string} */ prefix) =>
    [...journal.values.keys()]
      .filter((key) => key.startsWith(prefix))
      .map(get)
      .sort((a, b) => b.createdAt - a.createdAt)

  /** @type {import('stemwork/adapter').ApplicationStore} */
  const applications = {
    putApplication: (application) => put(`application/${application.id}`, application),
    getApplication: async (id) => get(`application/${id}`),
    listApplications: async () => list('application/'),
    putKey: (key) => put(`key/${key.id}`, key),
    getKey: async (id) => get(`key/${id}`),
    listKeys: async (app) => list('key/').filter((key) => key.app === app),
    deleteKey: ({ id }) => put(`key/${id}`, undefined),
  }
  return { applications, close: () => journal.close() }
}
