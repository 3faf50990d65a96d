import { Web3 } from 'web3' // 4
console.log(await new Web3(process.env.URL).eth.getUncle(0x2a6a4, 0))
