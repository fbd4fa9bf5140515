import { consoleRoutes } from './console.js'
import type { Route } from './route.js'
import { jobRoutes } from './routes/job-routes.js'
import { docsRoutes, operatorRoutes, serviceRoutes } from './routes/service-routes.js'
import { storageRoutes } from './routes/storage-routes.js'

/** Every route of the service. The console is a client of it and no part of the described interface. */
export function allRoutes(options: { docs: boolean; console?: boolean }): readonly Route[] {
  const routes = [...storageRoutes, ...jobRoutes, ...serviceRoutes, ...operatorRoutes]
  return [...(options.docs ? docsRoutes(routes) : routes), ...(options.console ? consoleRoutes : [])]
}
