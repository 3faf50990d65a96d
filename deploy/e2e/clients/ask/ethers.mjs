import { JsonRpcProvider } from 'ethers' // 6
const provider = new JsonRpcProvider(process.env.URL, 11155111, { staticNetwork: true })
console.log(await provider.send('eth_getUncleByBlockNumberAndIndex', ['0x2a6a4', '0x0']))
